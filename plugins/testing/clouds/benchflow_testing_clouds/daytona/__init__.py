"""Daytona: control API, toolbox, terminals, events and the object storage that build contexts go to."""
