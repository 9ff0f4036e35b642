"""What the study of the D-Score is made of; ``python -m benchmarks.study_dscore`` runs it."""
