def train(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
