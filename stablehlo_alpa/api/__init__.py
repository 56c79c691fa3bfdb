"""The front door: ``parallelize`` and the methods it takes."""
