"""Task formats of other projects."""
