"""The embedded sandbox: Linux namespaces, no root and no Docker needed."""
