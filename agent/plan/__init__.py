"""Plans: the smallest worthwhile changes that remedy the findings."""
