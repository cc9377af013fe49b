"""Whether a running role does its work: signs of life, and the command that looks at them."""
