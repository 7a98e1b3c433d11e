"""Local servers that speak the wire protocols of cloud sandboxes, with real boxes behind them. For tests only."""
