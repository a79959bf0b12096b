"""Files of models: LP, MPS, MathOptFormat and vOptLib."""
