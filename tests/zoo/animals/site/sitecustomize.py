import builtins
import sys

builtins.from_site = "set by sitecustomize"
sys.setrecursionlimit(1234)
