"""Has no hook at all."""
