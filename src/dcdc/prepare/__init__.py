"""A source and what is asked for become a config, and a config becomes a training."""
