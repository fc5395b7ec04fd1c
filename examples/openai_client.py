"""OpenAI's own client pointed at a running service: `python openai_client.py http://localhost:8000`."""

import sys

import numpy as np
import openai

url = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8000"
client = openai.OpenAI(base_url=f"{url}/v1", api_key="any, if the service has none")
texts = ["How do I reset my password?", "I forgot my login details.", "It rains."]
response = client.embeddings.create(model="ms-san-embed", input=texts)
vectors = np.array([row.embedding for row in response.data])
print(vectors.shape, (vectors @ vectors[0]).round(2).tolist())
