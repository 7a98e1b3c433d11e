"""A mock Google Calendar: calendars, events and who may see them, behind the routes of the real API."""
