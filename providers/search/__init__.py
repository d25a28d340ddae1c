"""providers/search"""
