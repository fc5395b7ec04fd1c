"""The share of texts that are unlike the training data, from a service's metrics; exit status 1 above a limit.

In Prometheus: rate(heedful_untypical_inputs_total[1h]) / rate(heedful_batch_inputs_sum[1h]) > 0.2
"""

import re
import sys
from urllib.request import urlopen

LIMIT = 0.2
url = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8000"
with urlopen(f"{url}/metrics") as response:
    text = response.read().decode()


def by_model(name: str) -> dict[str, float]:
    samples = re.findall(rf'^{name}\{{model="([^"]+)"\}} (\S+)$', text, re.MULTILINE)
    return {model: float(value) for model, value in samples}


encoded, untypical = (
    by_model("heedful_batch_inputs_sum"),
    by_model("heedful_untypical_inputs_total"),
)
shares = {model: untypical.get(model, 0) / count for model, count in encoded.items() if count}
for model, share in sorted(shares.items()):
    print(f"{model}: {share:.0%} of {encoded[model]:.0f} texts")
sys.exit(int(max(shares.values(), default=0) > LIMIT))
