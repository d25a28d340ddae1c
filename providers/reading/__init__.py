"""providers/reading"""
