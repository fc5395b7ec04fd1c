"""What routes read and answer, as pydantic models."""
