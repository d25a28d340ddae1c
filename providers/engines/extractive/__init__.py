"""providers/engines/extractive"""
