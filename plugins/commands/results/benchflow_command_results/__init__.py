"""Commands that read results: list, show, compare, aggregate, settle, export, import."""
