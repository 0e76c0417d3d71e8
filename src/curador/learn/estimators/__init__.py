"""The estimators, one file each; `curador.learn` names them."""
