"""Web search services, and the decorators that limit, watch, price and cache them."""
