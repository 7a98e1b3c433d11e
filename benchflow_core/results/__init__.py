"""What is written: layout, atomic writers, the event log, readers, metrics."""
