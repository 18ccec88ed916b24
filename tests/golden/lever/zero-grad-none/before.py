def train(optimizer, loss):
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
