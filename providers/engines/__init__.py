"""providers/engines"""
