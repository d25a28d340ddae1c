"""providers/models"""
