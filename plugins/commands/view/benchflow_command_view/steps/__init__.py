"""A trajectory as steps: what one reads as a conversation, whoever wrote it down."""
