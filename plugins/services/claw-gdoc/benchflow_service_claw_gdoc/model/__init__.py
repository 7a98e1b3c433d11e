"""A document as the Docs API shows it, without indexes: those are counted when they are asked for."""
