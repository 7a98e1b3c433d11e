"""BenchFlow's core: runs rollouts and knows no backend by name. Plugins bring the backends."""

__version__ = "0.8.0.dev0"
