"""Grafana dashboards of rackwise, as code.

Write deploy/grafana/dashboards anew: make dashboards
"""
