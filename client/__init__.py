"""What people and programs use to start, watch and steer research."""
