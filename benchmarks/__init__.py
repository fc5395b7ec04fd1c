"""Programs that measure. Each writes a record into results/performance; nothing here is imported by the product."""
