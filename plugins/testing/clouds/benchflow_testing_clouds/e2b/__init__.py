"""An E2B on this machine."""
