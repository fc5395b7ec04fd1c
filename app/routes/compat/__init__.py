"""Routes that other services' clients call."""
