raise RuntimeError("kaput")
