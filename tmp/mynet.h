
#include <eml_net.h>
static const float mynet_layer_0_biases[4] = { -3.433647f, -24.868582f, -11.467135f, 18.493410f };
static const float mynet_layer_0_weights[52] = { 0.366257f, 1.064787f, 0.565488f, -0.923267f, 0.493623f, 0.519622f, -0.145628f, -0.082684f, 2.267835f, -0.221138f, 2.889946f, -2.275314f, -0.033146f, -0.011842f, -0.253366f, 0.076624f, -0.023306f, 0.037169f, -0.001730f, -0.001858f, 0.550992f, 1.339367f, 0.376519f, 0.093486f, -0.768628f, 0.628386f, -0.103286f, 0.540520f, -0.310502f, -4.393529f, -4.707095f, 0.239944f, -0.041617f, 0.494463f, -0.235140f, 0.171659f, 0.266188f, -0.108245f, 0.202542f, -0.219749f, -3.381626f, 0.953604f, 2.060667f, 0.202701f, -0.806597f, 0.909936f, -0.046882f, -0.073011f, -0.000042f, 0.001068f, 0.001260f, -0.003147f };
static const float mynet_layer_1_biases[3] = { 0.097204f, -0.245510f, 0.464256f };
static const float mynet_layer_1_weights[12] = { -0.228257f, -0.394835f, 0.770869f, 0.192550f, -0.804019f, -1.230131f, 0.458716f, -0.872859f, -0.709718f, -0.938929f, 1.374556f, -1.284424f };
static float mynet_buf1[13];
static float mynet_buf2[13];
static const EmlNetLayer mynet_layers[2] = { 
{ 4, 13, mynet_layer_0_weights, mynet_layer_0_biases, EmlNetActivationRelu }, 
{ 3, 4, mynet_layer_1_weights, mynet_layer_1_biases, EmlNetActivationSoftmax } };
static EmlNet mynet = { 2, mynet_layers, mynet_buf1, mynet_buf2, 13 };

    int32_t
    mynet_predict(const float *features, int32_t n_features)
    {
        return eml_net_predict(&mynet, features, n_features);
    }
    

    int32_t
    mynet_regress(const float *features, int32_t n_features, float *out, int32_t out_length)
    {
        return eml_net_regress(&mynet, features, n_features, out, out_length);
    }
    

    float
    mynet_regress1(const float *features, int32_t n_features)
    {
        return eml_net_regress1(&mynet, features, n_features);
    }
    