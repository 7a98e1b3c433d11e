"""A Modal on this machine: gRPC by the vendor's own generated messages, with real boxes behind it."""
