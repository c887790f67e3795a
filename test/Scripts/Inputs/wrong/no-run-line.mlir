func.func private @g()
