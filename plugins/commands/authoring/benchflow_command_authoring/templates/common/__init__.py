"""BenchFlow plugin: the {{kind}} {{name}}."""
