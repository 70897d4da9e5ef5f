bool bytes_equal(bytes a, bytes b);
