"""Every setting, defined once: files, options, keywords, what is written down and the JSON Schema come from here."""
