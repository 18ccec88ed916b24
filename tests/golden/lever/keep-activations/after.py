def forward(block, x):
    return block(x)
