"""Other libraries' vec env classes, with their constructor arguments, over corral's runners."""
