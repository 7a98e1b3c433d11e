"""ProgramBench: its tasks as Harbor folders, and how their rewards compare with ProgramBench's own scores."""
