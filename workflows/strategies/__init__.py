"""workflows/strategies"""
