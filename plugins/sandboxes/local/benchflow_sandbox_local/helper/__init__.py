"""The helper process and what runs inside boxes: standard library only, imported whole before any root changes."""
