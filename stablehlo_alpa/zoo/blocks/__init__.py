"""What models of the zoo share."""
