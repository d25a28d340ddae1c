"""Clients that start, watch and steer research."""
