"""Homes that released versions wrote; each is kept, and each later version reads them."""
