"""One module for each version of the tables. Never change one that was released: add the next."""
