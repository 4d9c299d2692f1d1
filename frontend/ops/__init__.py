"""The operators, one file each: the public function, its primitive, and every rule of it."""
