"""Multi-hypothesis test-time adaptation."""
