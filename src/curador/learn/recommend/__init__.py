"""What recommenders are made of: what users add, as whole numbers; what is made of noisy sums; what a user does alone."""
