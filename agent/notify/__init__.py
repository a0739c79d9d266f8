"""Notifications: what happened in the cluster and in the agent, sent to people."""
