"""Real shifts: datasets in their official layouts and the images shipped with the package."""
